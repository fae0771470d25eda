/** What the keys mean that only this protocol has, or that mean something else here. */
import type { Descriptions } from "#core/key-descriptions.ts";

export const descriptions: Descriptions = {
  "padding-scheme": "How the first packets are padded, told to clients; empty is the protocol's own scheme.",
  "idle-session-check-interval": ["Seconds between two looks at idle connections; 5 and less are 30.", 30],
  "idle-session-timeout": ["Seconds after which an idle connection is closed; 5 and less are 30.", 30],
  "min-idle-session": ["Idle connections that are kept open in any case, by each thread.", 2],
  "client-metadata": ["What the client calls itself, inside TLS.", "weir/1"],
};
