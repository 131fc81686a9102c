"""Reports of an audit: pages, tables and charts."""
