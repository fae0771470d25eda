/** Both sides of a node that speaks TLS as `server.test`, with a certificate that the client knows by its fingerprint. */
import { makeCertificate } from "./certificate.ts";

export const certificate = makeCertificate({ names: ["server.test"] });
export const uuid = "b831381d-6324-4d53-ad4f-8cda48b30811";
export const password = "letmein";

/** Keys of a listener. */
export const serverTls = { certificate: certificate.cert, "private-key": certificate.key };
/** Keys of a node of any protocol: some call the name one thing, some another. */
export const clientTls = {
  tls: true,
  servername: "server.test",
  sni: "server.test",
  fingerprint: certificate.fingerprint,
};
