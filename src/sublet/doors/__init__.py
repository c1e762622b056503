"""Other people's protocols, one package each."""
