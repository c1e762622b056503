"""A small OpenStack: Keystone, Placement, Glance, Neutron and Nova with real virtual machines, in namespaces."""
