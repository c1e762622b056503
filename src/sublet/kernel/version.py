"""Which version of Sublet this code is, known without a look at what is installed, which would take long."""

VERSION = "0.1.0"
