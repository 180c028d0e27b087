"""Commands of several stores on one foundation."""
