/** The calls of libssl that QUIC makes. */
import type * as Ffi from "node:ffi";
import { TICKET_CALLS } from "./ssl-tickets.ts";

export const QUIC_TLS_CALLS = {
  ...TICKET_CALLS,
  SSL_new: { arguments: ["pointer"], return: "pointer" },
  SSL_free: { arguments: ["pointer"], return: "void" },
  SSL_set_connect_state: { arguments: ["pointer"], return: "void" },
  SSL_set_accept_state: { arguments: ["pointer"], return: "void" },
  SSL_ctrl: { arguments: ["pointer", "i32", "i64", "pointer"], return: "i64" },
  SSL_set_alpn_protos: { arguments: ["pointer", "pointer", "u32"], return: "i32" },
  SSL_set_quic_tls_cbs: { arguments: ["pointer", "pointer", "pointer"], return: "i32" },
  SSL_CTX_ctrl: { arguments: ["pointer", "i32", "i64", "pointer"], return: "i64" },
  SSL_set_quic_tls_early_data_enabled: { arguments: ["pointer", "i32"], return: "i32" },
  SSL_get_early_data_status: { arguments: ["pointer"], return: "i32" },
  SSL_set_quic_tls_transport_params: { arguments: ["pointer", "pointer", "u64"], return: "i32" },
  SSL_is_init_finished: { arguments: ["pointer"], return: "i32" },
  SSL_do_handshake: { arguments: ["pointer"], return: "i32" },
  SSL_read: { arguments: ["pointer", "pointer", "i32"], return: "i32" },
  SSL_get_error: { arguments: ["pointer", "i32"], return: "i32" },
  SSL_get_current_cipher: { arguments: ["pointer"], return: "pointer" },
  SSL_CIPHER_get_protocol_id: { arguments: ["pointer"], return: "u16" },
  SSL_export_keying_material: {
    arguments: ["pointer", "pointer", "pointer", "pointer", "pointer", "pointer", "pointer", "i32"],
    return: "i32",
  },
  SSL_set_shutdown: { arguments: ["pointer", "i32"], return: "void" },
  SSL_set_num_tickets: { arguments: ["pointer", "u64"], return: "i32" },
  SSL_new_session_ticket: { arguments: ["pointer"], return: "i32" },
  SSL_session_reused: { arguments: ["pointer"], return: "i32" },
  ERR_clear_error: { arguments: [], return: "void" },
  ERR_peek_error: { arguments: [], return: "u64" },
  ERR_reason_error_string: { arguments: ["u64"], return: "pointer" },
} as const;

/** What they are called by. */
export interface QuicTlsCalls {
  readonly ffi: typeof Ffi;
  readonly functions: ReturnType<typeof Ffi.dlopen<typeof QUIC_TLS_CALLS>>["functions"];
}
