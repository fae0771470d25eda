import type { SameKeys } from "#lib/words.ts";
import type { en } from "./en.ts";

export const zh: SameKeys<typeof en> = {
  "page.language": "语言",

  "portal.over": "流量配额已用完",
  "portal.own": "我的流量",
  "portal.used": "窗口内已用",
  "portal.left": "剩余",
  "portal.rate": "当前限速",
  "portal.limit": "限速",
  "portal.upload": "上传",
  "portal.download": "下载",
  "portal.both": "上传 {upload}，下载 {download}",
  "portal.unlimited": "不限",
  "portal.plot": "最近 24 小时",
  "portal.days": "最近 30 天",
  "portal.months": "最近 12 个月",
  "portal.sum": "合计 {sum}",
  "portal.compared": "合计 {sum}（{change}，此前同样长的时间为 {before}）",
  "portal.lifts": "窗口内的用量释放后，限制会自动解除。",
  "portal.liftsAt": "窗口内的用量释放后，限制会自动解除（若不再使用，大约在 {time}）。",
  "portal.none": "没有针对本设备的策略。",
  "portal.denied": "链接无效或已过期。",
  "portal.gone": "配额已恢复，请重新打开原来的页面。",

  "subscription.state": "状态",
  "subscription.active": "正常",
  "subscription.disabled": "已停用",
  "subscription.expired": "已过期",
  "subscription.limited": "流量已用完",
  "subscription.used": "已用",
  "subscription.usedText": "{bytes}（上传 {upload}）",
  "subscription.left": "剩余",
  "subscription.leftText": "{left} / {total}",
  "subscription.until": "到期",
  "subscription.import": "导入到客户端",
  "subscription.importText":
    "在装有客户端的设备上打开本页并点击其名称；也可以扫描二维码，或将地址复制到客户端。",
  "subscription.subscription": "订阅",
  "subscription.node": "节点",
};
