/** `svc.webhooks`: programs that are told of events. */
import { EVENT_TYPES } from "#core/events.ts";
import { block, choice, Fault, filePath, flag, httpUrlFault, list, maybe, scalar } from "#core/fields.ts";

const MOST_WEBHOOKS = 32;
const FEWEST_KEY_BYTES = 24;
const MOST_KEY_BYTES = 64;

const hookName = () =>
  scalar({ type: "string", pattern: "^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$" }, (source) =>
    /^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$/.test(source)
      ? source
      : new Fault("expected at most 40 letters, digits, hyphens and underscores"),
  );

/** As the Standard Webhooks scheme has it. */
const signingSecret = () =>
  scalar({ type: "string", format: "password", pattern: "^whsec_[A-Za-z0-9+/]+={0,2}$" }, (source) => {
    const [, body = ""] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(source) ?? [];
    const { length } = Buffer.from(body, "base64");
    return length >= FEWEST_KEY_BYTES && length <= MOST_KEY_BYTES
      ? source
      : new Fault(`expected whsec_ and the base64 of ${FEWEST_KEY_BYTES} to ${MOST_KEY_BYTES} random bytes`);
  });

const receiver = () =>
  scalar({ type: "string", format: "uri" }, (source) => {
    const fault = httpUrlFault(source);
    if (fault !== null) return fault;
    const { username, password } = new URL(source);
    return username === "" && password === "" ? source : new Fault("must not have a user or a password");
  });

/** `user.created`, or `user.*`. */
const eventName = () => {
  const families = new Set(EVENT_TYPES.map((type) => `${type.split(".", 1)[0]}.*`));
  const known = [...EVENT_TYPES, ...families];
  return choice(known);
};

const webhook = () =>
  block({
    name: hookName(),
    url: receiver(),
    secret: maybe(signingSecret()),
    "secret-file": maybe(filePath()),
    events: list(eventName()).default([]),
    "allow-private": flag().default(false),
  }).superRefine(({ url, secret, secretFile, allowPrivate }, context) => {
    const fault = (key: string, message: string) =>
      context.addIssue({ code: "custom", path: [key], message });
    if (secret === null && secretFile === null) fault("secret-file", "is required, or secret in its place");
    if (secret !== null && secretFile !== null)
      fault("secret-file", "secret is there already; one of the two");
    if (url.startsWith("http:") && !allowPrivate)
      fault("url", "expected https; http is for receivers in the own network, with allow-private");
  });

export const webhooks = () =>
  list(webhook())
    .default([])
    .superRefine((all, context) => {
      const names = new Set<string>();
      for (const [at, { name }] of all.entries()) {
        if (names.has(name))
          context.addIssue({ code: "custom", path: [at, "name"], message: "another webhook has this name" });
        names.add(name);
      }
      if (all.length > MOST_WEBHOOKS)
        context.addIssue({ code: "custom", path: [], message: `at most ${MOST_WEBHOOKS} webhooks` });
    });
