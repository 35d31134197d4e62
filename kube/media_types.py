"""The content types of the API. A room of its own, so that naming one does not import the client. Pure."""

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
