"""A real Kubernetes of one node on this machine: API server, controllers, scheduler, kubelet and containerd."""
