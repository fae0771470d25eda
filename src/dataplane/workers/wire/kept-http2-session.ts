import { CLIENT_PREFACE } from "#transport/http2/frames.ts";
import type { Http2Tunnels } from "#core/wire-details.ts";
import { Http2ServerFraming } from "./http2-server-framing.ts";
import type { KeptSessionHost } from "./kept-client.ts";
import { KeptHttp2Stream } from "./kept-http2-stream.ts";
import { KeptMuxSession } from "./kept-mux-session.ts";
import type { Wire } from "./wire.ts";

/** HTTP/2 of a listener's client. */
export class KeptHttp2Session extends KeptMuxSession {
  constructor(inner: Wire, tunnels: Http2Tunnels, host: KeptSessionHost) {
    const framing = new Http2ServerFraming(tunnels);
    super(inner, framing, CLIENT_PREFACE.length, host);
    this.awaitProof();
    this.say(framing.encodeSettings());
  }

  protected override newStream(id: number): KeptHttp2Stream {
    return new KeptHttp2Stream(this, this.host, id);
  }
}
