"""Commands for several stores with the same foundation."""
