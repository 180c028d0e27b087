"""Commands of what a store holds, a file each."""
