// Texts of the operators' views. Key → [Portuguese, English].
export const operators = {
  "circuit.closed": ["fechado", "closed"],
  "circuit.half_open": ["em teste", "probing"],
  "circuit.open": ["aberto", "open"],

  "providers.title": ["Provedores", "Providers"],
  "providers.about": ["As conexões por onde as mensagens saem. Circuito aberto: nada sai por ali até que uma chamada de teste dê certo.", "The connections that messages leave through. An open circuit: nothing leaves there until a probe succeeds."],
  "providers.connection": ["Conexão", "Connection"],
  "providers.provider": ["Provedor", "Provider"],
  "providers.ownAccounts": ["contas dos números", "the numbers' accounts"],
  "providers.troubled": ["Com problema", "Troubled"],
  "providers.empty": ["Nenhuma conexão ainda. Cadastre um número ou configure um provedor (docs/configuration.md).", "No connection yet. Register a number, or set up a provider (docs/configuration.md)."],
};
