"""Built-in behaviour, a plugin a module, registered like anybody's and answering last."""
