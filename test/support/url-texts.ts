import fc from "fast-check";
import { codePoint } from "./code-points.ts";

const part = fc.oneof(fc.string({ maxLength: 12 }), fc.string({ unit: codePoint, maxLength: 6 }));
const label = fc.stringMatching(/^[a-z0-9-]{1,12}$/);
const host = fc.oneof(
  fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join(".")),
  fc.ipV4(),
  fc.ipV6().map((ip) => `[${ip}]`),
  part,
);
const scheme = fc.constantFrom(
  "http",
  "https",
  "tls",
  "tcp",
  "udp",
  "quic",
  "h3",
  "dhcp",
  "rcode",
  "system",
  "x",
);
const optional = (before: string, text: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.option(text).map((value) => (value === null ? "" : `${before}${value}`));

/** Text of the shape of a URL, any part of which may be missing or wrong. Needs no table of code points to be made. */
export const urlText: fc.Arbitrary<string> = fc
  .tuple(
    scheme,
    fc.option(part),
    host,
    optional(":", fc.nat(70_000).map(String)),
    optional("/", part),
    optional("?", part),
    optional("#", part),
  )
  .map(([name, user, where, port, path, query, fragment]) =>
    [`${name}://`, user === null ? "" : `${user}@`, where, port, path, query, fragment].join(""),
  );
