"""The SQL of people, their identities, codes, second factors, groups and tokens."""
