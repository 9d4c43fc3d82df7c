"""The provably optimal funnel: column generation over posteriors, with a certified bound."""
