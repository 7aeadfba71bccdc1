"""Why a load test cannot go on: lines for who runs it."""


class LoadTestError(Exception):
    """A load test cannot do what was asked; the text is one line that says what to do."""


class ApiUnreachable(LoadTestError):
    """Nothing answers at `url` as Recado does; `error` says what happened instead."""

    def __init__(self, url: str, error: Exception) -> None:
        super().__init__(f"{url} does not answer")
        self.url = url
        self.error = error
