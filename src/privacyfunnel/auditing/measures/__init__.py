"""What guesses, probabilities, tables, densities and reconstructions say: from samples to findings."""
