// Shows the document of this very server. The validator badge would call another host: it stays off.
window.ui = SwaggerUIBundle({
  url: "/v2/openapi.json",
  dom_id: "#interface",
  deepLinking: true,
  displayRequestDuration: true,
  persistAuthorization: false,
  validatorUrl: null,
});
