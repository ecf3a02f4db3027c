"""The config file: named endpoints and preferences."""
