"""Names by which a notebook or container is handed to a platform that runs no programs."""

BROUGHT = "sublet.notebook"  # the name of the data item that is the notebook itself
KERNEL_PLAN = ".sublet/kernel.json"  # the notebook's parameters and requirements, among a program's files
KERNEL = "jupyter-kernel"  # the tool, and the first word of such a program
HUB = "jupyterhub"  # the same for an interactive server
SKAHA = "skaha"  # the tool, and the first word of what CANFAR's Skaha runs
SKAHA_PLAN = ".sublet/skaha.json"  # the container's image, words and variables
