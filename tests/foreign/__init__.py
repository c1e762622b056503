"""A package of somebody else, with a platform, a kind and a mover; the tests install it beside Sublet."""
