"""The certified way: records into cells, an exact release of cells, and a bound that no adversary beats."""
