"""Commands for several stores with the same foundation, that is, words, basis and rules."""
