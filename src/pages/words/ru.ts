import type { SameKeys } from "#lib/words.ts";
import type { en } from "./en.ts";

export const ru: SameKeys<typeof en> = {
  "page.language": "Язык",

  "portal.over": "Квота трафика исчерпана",
  "portal.own": "Ваш трафик",
  "portal.used": "Использовано за период",
  "portal.left": "Осталось",
  "portal.rate": "Скорость сейчас",
  "portal.limit": "Ограничение скорости",
  "portal.upload": "отдача",
  "portal.download": "загрузка",
  "portal.both": "отдача {upload}, загрузка {download}",
  "portal.unlimited": "без ограничений",
  "portal.plot": "Последние 24 часа",
  "portal.days": "Последние 30 дней",
  "portal.months": "Последние 12 месяцев",
  "portal.sum": "Всего {sum}",
  "portal.compared": "Всего {sum} ({change}, за такое же время до этого {before})",
  "portal.lifts": "Ограничение снимется само, когда период освободится.",
  "portal.liftsAt":
    "Ограничение снимется само, когда период освободится (если больше ничего не расходовать, около {time}).",
  "portal.none": "Для этого устройства политик нет.",
  "portal.denied": "Ссылка недействительна или истекла.",
  "portal.gone": "Квота снова доступна. Откройте нужную страницу ещё раз.",

  "subscription.state": "Состояние",
  "subscription.active": "активна",
  "subscription.disabled": "отключена",
  "subscription.expired": "истекла",
  "subscription.limited": "квота исчерпана",
  "subscription.used": "Использовано",
  "subscription.usedText": "{bytes} (отдача {upload})",
  "subscription.left": "Осталось",
  "subscription.leftText": "{left} из {total}",
  "subscription.until": "До",
  "subscription.import": "Добавить в приложение",
  "subscription.importText":
    "Откройте эту страницу на устройстве с приложением и нажмите его название. Или отсканируйте код, или скопируйте адрес в приложение.",
  "subscription.subscription": "Подписка",
  "subscription.node": "Узел",
};
