import type { SameKeys } from "#lib/words.ts";
import type { first as english } from "../en/first.ts";

export const first: SameKeys<typeof english> = {
  "use.title": "使用此代理",
  "use.none": "没有开放 HTTP 或 SOCKS 端口：请在配置中设置 mixed-port。",
  "use.for": "用于",
  "use.address": "地址",
  "use.shell": "终端 (Shell)",
  "use.powershell": "PowerShell",
  "use.git": "Git",
  "use.copy": "复制",
  "use.copied": "已复制",
  "use.shared": "局域网内的其他设备也可以使用此地址。",
  "use.thisMachine": "仅运行 weir 的机器可以使用；在设置中开启“允许局域网连接”后，其他设备也可使用。",
  "use.qrLabel": "代理地址的二维码",
  "trouble.title": "需要注意",
  "trouble.none": "一切正常：节点、规则、列表与日志均无异常。",
  "trouble.show": "查看",
  "trouble.showOne": "查看：{what}",
  "trouble.unusable": { other: "{count} 个节点无法使用" },
  "trouble.silent": { other: "{count} 个节点未通过最近一次测试" },
  "trouble.deadRules": { other: "{count} 条规则不会匹配任何流量" },
  "trouble.emptyProviders": { other: "{count} 个列表从未获取成功" },
  "trouble.warnings": { other: "日志中最新的 {count} 条警告" },
};
