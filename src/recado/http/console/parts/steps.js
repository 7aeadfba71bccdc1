// What a step of a journey does, in a line (C9.4).
import { duration, share } from "../format.js";
import { word } from "../texts.js";

/** Its kind, with the channel of a send. */
export function stepKind({ tipo, canal }) {
  return [word("stepKind", tipo), canal && word("channel", canal)].filter(Boolean).join(" · ");
}

/** What it does exactly. */
export function stepDetail(step) {
  switch (step.tipo) {
    case "enviar":
      return step.texto ?? step.rcs?.conteudo?.text ?? step.templateId ?? "";
    case "esperar":
      if (step.minutos) return duration(60 * step.minutos);
      return [step.hora, (step.dias ?? []).map((day) => word("weekday", day)).join(", ")].filter(Boolean).join(" · ");
    case "condicao":
      if (step.campo) return [step.campo, word("operator", step.operador), step.valor].filter((each) => each != null).join(" ");
      return [step.sobre, word("signal", step.sinal), step.evento].filter(Boolean).join(" ");
    case "webhook":
      return step.webhookId ?? "";
    case "dividir":
      return branches(step.ramos ?? []);
    default:
      return "";
  }
}

/** Each with its part of those who pass. */
function branches(ramos) {
  const all = ramos.reduce((sum, { peso }) => sum + (peso ?? 0), 0);
  return ramos.map(({ nome, peso }) => [nome, peso && share(peso / all)].filter(Boolean).join(" ")).join(" · ");
}

export function stepText(step) {
  return [stepKind(step), stepDetail(step)].filter(Boolean).join(": ");
}
