"""What we know of each engine, one file per engine, behind one registry. Pure: documents in, facts out."""
