"""Images: from a reference to facts, from a plan to prepared bytes; pixels are touched in worker processes only."""
