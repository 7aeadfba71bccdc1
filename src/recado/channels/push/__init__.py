"""The adapters of push: how a notification is handed to the service that knows the device."""
