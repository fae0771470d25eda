/** What the keys mean that only this protocol has, or that mean something else here. */
import type { Descriptions } from "#core/key-descriptions.ts";

export const descriptions: Descriptions = {
  "ss-opts": "A layer of Shadowsocks inside TLS, as trojan-go has it.",
  "ss-option": "A layer of Shadowsocks inside TLS, as trojan-go has it.",
  "ss-opts.method": ["Its cipher.", "aes-128-gcm"],
  "ss-option.method": ["Its cipher.", "aes-128-gcm"],
};
