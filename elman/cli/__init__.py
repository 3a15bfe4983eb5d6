"""The command line. Thin: it reads options, calls the library, prints."""
