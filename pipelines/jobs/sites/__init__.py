"""Jobs of several stores on one foundation."""
