"""Each family of models beside its peers at their best, on planted draws and on real data."""
