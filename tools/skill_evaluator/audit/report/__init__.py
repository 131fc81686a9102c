"""An audit as people read it: pages, tables and charts."""
