/** `svc.fleet`: this program is one node of several that have their users in one database. */
import { block, choice, Fault, filePath, mapOf, maybe, name, pem, scalar, text } from "#core/fields.ts";
import { parsePostgresUri } from "#lib/postgres-uri.ts";

const dsn = () =>
  scalar({ type: "string", format: "password" }, (source) => {
    const read = parsePostgresUri(source);
    return typeof read === "string" ? new Fault(read) : source;
  });

const MOST_NAME_CHARACTERS = 63;

/** A name of a node stands in paths of the API and in titles of subscriptions. */
const nodeName = () =>
  scalar({ type: "string", pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$" }, (source) =>
    /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(source) && source.length <= MOST_NAME_CHARACTERS
      ? source
      : new Fault(`expected at most ${MOST_NAME_CHARACTERS} letters, digits, dots, hyphens and underscores`),
  );

const hostName = () =>
  scalar({ type: "string" }, (source) =>
    source !== "" && source.length <= 253 && !/[\s/?#@[\]]/.test(source)
      ? source
      : new Fault("expected a host name or an address, without port and brackets"),
  );

const ON_PARTITION = ["allow", "overage", "stop"] as const;

export const fleet = block({
  dsn: maybe(dsn()),
  "dsn-file": maybe(filePath()),
  ca: maybe(pem()),
  node: maybe(nodeName()),
  address: maybe(hostName()),
  labels: mapOf(text()).default({}),
  "on-partition": choice(ON_PARTITION).default("allow"),
}).superRefine((value, context) => {
  if (value.dsn !== null && value.dsnFile !== null)
    context.addIssue({ code: "custom", path: ["dsn-file"], message: "dsn is there already; one of the two" });
  for (const key of Object.keys(value.labels))
    if (!name().safeParse(key).success)
      context.addIssue({ code: "custom", path: ["labels"], message: "a label needs a name" });
});
