/** What both sides of a connection in REALITY are told, and a site in front of which that is. */
import { after } from "node:test";
import { openSite, privateKey, publicKey, SHORT_ID, SITE } from "./reality.ts";

const dest = await openSite();
after(() => dest[Symbol.asyncDispose]());
/** Options of a listener and a node of any of these protocols. */
export const REALITY = {
  server: {
    "reality-config": {
      dest: `127.0.0.1:${dest.port}`,
      "private-key": privateKey,
      "short-id": [SHORT_ID],
      "server-names": [SITE],
    },
  },
  client: {
    tls: true,
    servername: SITE,
    sni: SITE,
    "client-fingerprint": "chrome",
    "reality-opts": { "public-key": publicKey, "short-id": SHORT_ID },
  },
};
