"""Import results of other tools, and export records as tables and JUnit XML."""
