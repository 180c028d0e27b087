"""Files at a URL: written as a whole, listed, and sealed by a hash."""
