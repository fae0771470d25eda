/** The Controller's certificate and what it asks of clients. */
import { certifiedNames } from "#core/acme.ts";
import { block, choice, list, pem } from "#core/fields.ts";

const CLIENT_AUTH = ["", "request", "require-any", "verify-if-given", "require-and-verify"] as const;

export const tls = block({
  acme: certifiedNames(),
  certificate: pem().default(""),
  "private-key": pem().default(""),
  "client-auth-type": choice(CLIENT_AUTH).default(""),
  "client-auth-cert": pem().default(""),
  "ech-key": pem().default(""),
  "custom-certifactes": list(pem()).default([]), // the misspelling is the real name of the key
}).transform((value, context) => {
  const { clientAuthType: type, clientAuthCert: authority } = value;
  if (authority === "" && (type === "verify-if-given" || type === "require-and-verify"))
    context.issues.push({
      code: "custom",
      path: ["client-auth-cert"],
      message: `client-auth-type ${type} needs client-auth-cert: the client CA, as PEM or path`,
      input: authority,
    });
  // A client CA without a type means that clients must show a certificate of it.
  return { ...value, clientAuthType: type === "" && authority !== "" ? "require-and-verify" : type };
});
