"""The commit protocols of this distribution, a package each. The engine calls them through `Protocol` alone."""
