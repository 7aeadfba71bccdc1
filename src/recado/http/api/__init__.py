"""Operations as values: routes, calls, checked input, pages, problems, and the OpenAPI document."""
