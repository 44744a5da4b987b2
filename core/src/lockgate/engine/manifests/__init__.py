"""The manifests that task attempts have saved: found, loaded, taken over from an earlier attempt, and aborted. Every
protocol that saves manifests asks here; how one is saved is the protocol's."""
