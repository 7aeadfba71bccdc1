"""One address for all cells: finds the cell of each request's organization, and passes the request on."""
