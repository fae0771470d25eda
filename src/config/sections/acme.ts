/** Certificates by ACME. The block's presence lets listeners and `tls` ask for them. */
import { CHALLENGES } from "#core/acme.ts";
import { block, choice, Fault, filePath, flag, maybe, pem, scalar, show, text } from "#core/fields.ts";
import { parseHostPort } from "#net/address/address-fields.ts";

/** Of Let's Encrypt: https://letsencrypt.org/docs/acme-protocol-updates/ and /docs/staging-environment/ */
const DIRECTORIES: Readonly<Record<string, string>> = {
  production: "https://acme-v02.api.letsencrypt.org/directory",
  staging: "https://acme-staging-v02.api.letsencrypt.org/directory",
};

const directory = () =>
  scalar({ type: "string" }, (source, raw) => {
    const known = Object.hasOwn(DIRECTORIES, source) ? DIRECTORIES[source] : undefined;
    if (known !== undefined) return known;
    const url = URL.parse(source);
    if (url?.protocol === "https:" && url.username === "" && url.password === "") return url.href;
    return new Fault(`expected production, staging or the https:// URL of a directory, got ${show(raw)}`);
  });

const email = () =>
  scalar({ type: "string", format: "email" }, (source, raw) =>
    source === "" || /^[^\s@,?]+@[^\s@,?]+$/.test(source)
      ? source
      : new Fault(`expected one address such as me@example.com, got ${show(raw)}`),
  );

const listen = () =>
  scalar({ type: "string" }, (source, raw) => {
    const at = parseHostPort(source);
    return at !== null && at.port !== 0
      ? at
      : new Fault(`expected host:port such as :80 or 203.0.113.1:80, got ${show(raw)}`);
  });

const agreed = () =>
  scalar({ type: "boolean" }, (_, raw) => {
    const read = flag().safeParse(raw);
    return read.success && read.data
      ? true
      : new Fault("must be true: the authority issues nothing to those who do not agree to its terms");
  });

export const acme = block({
  email: email().default(""),
  "agree-tos": agreed(),
  directory: directory().prefault("production"),
  ca: maybe(pem()),
  folder: filePath().default("acme"),
  challenge: choice(CHALLENGES).default("http-01"),
  listen: listen().prefault(":80"),
  proxy: text().default(""),
});
