// How troubled a number is, for its colour and its place in the list: as the API orders them (C34.1).
import { word } from "./texts.js";

const DOWN = ["no_connection", "number_state"];
const HELD = [
  "organization_suspended", "operator_paused", "number_paused", "daily_limit", "tier_limit", "quality", "template_state",
];

/** 3: somebody should look, 2: it waits for what ends by itself or was decided, 1: in doubt, 0: none. */
export function trouble(number) {
  if (number.actor.state === "backing_off" || number.breaker !== "closed") return 3;
  const reason = due(number) ? number.holding?.reason : undefined;
  if (DOWN.includes(reason)) return 3;
  if (HELD.includes(reason)) return 2;
  const low = number.qualityRating === "yellow" || number.qualityRating === "red";
  return number.errorRate5m >= 0.1 || number.uncertain || number.status === "flagged" || low ? 1 : 0;
}

export const TONES = ["good", "warn", "warn", "bad"];

/** What is due and has not left. */
export function due(number) {
  const { critical, normal, bulk } = number.queue;
  return critical + normal + bulk;
}

export function paused(number) {
  return number.holding?.reason === "operator_paused";
}

/** In a few words what the number does: what it waits for, or its status. */
export function doing(number) {
  if (number.actor.state === "backing_off") return word("actorState", "backing_off");
  if (number.breaker !== "closed") return word("reason", "no_connection");
  if (number.holding) return word("reason", number.holding.reason);
  return word("numberStatus", number.status);
}
