"""Programs that train, measure and compare; they import the package, and it never imports them."""
