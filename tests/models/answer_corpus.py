"""Answers as models and servers write them, each with what a person reads in it without doubt: a value, or None.

Each entry is an answer and its value. `J`, `R` and `T` stand for the other fields of a judgement, a review and a task's
answer; they save space and change nothing.
"""

from __future__ import annotations

J = '"norms":"Customs differ.","reasoning":"Most people disapprove."'
R = '"cultural_accuracy":true,"logical_consistency":true,"score_fit":false,"justification":"It follows."'
T = '"reasoning":"Three times two."'
SCORED, VALID = f'{{{J},"score":0.24}}', f'{{{R},"verdict":"VALID"}}'
FINAL = "<|end|><|start|>assistant<|channel|>final<|message|>"

JUDGEMENTS: tuple[tuple[str, float | None], ...] = (
    # --- read: the form that was asked for, and what stands around it
    (SCORED, 0.24), (f'{{{J},"score":0.24,"final":-0.24}}', None), (f'{{{J},"score":0.24,"result":"-0.24"}}', None),
    (f'{{{J},"score":0.24,"final":0.24}}', 0.24), (f'{{{J},"score":0.24,"rating":7}}', 0.24),
    (f'{{{J},"score":-0.24}}', -0.24), (f'{{{J},"score":1}}', 1.0), (f'{{{J},"score":0}}', 0.0),
    (f'{{{J},"score":5e-1}}', 0.5), (f'  \n{SCORED}\n', 0.24), (f'\ufeff{SCORED}', 0.24),
    (f'```json\n{SCORED}\n```', 0.24), (f'~~~\n{SCORED}\n~~~', 0.24), (f'```json\n{SCORED}', 0.24),
    (f'Here is the JSON:\n{SCORED}\nLet me know!', 0.24), (f'{SCORED}\n\nSources: [1], [2]', 0.24),
    (f'{SCORED}\n\nNote: the schema was {{}} as asked.', 0.24), (f'{SCORED}\n\nSee {{"source": "a survey"}}.', 0.24),
    (f'As in the set {{x, y}} and [a, b]: {SCORED}', 0.24), (f'{SCORED}\n{SCORED}', 0.24),
    (f'{SCORED}\nSo SCORE = 0.24.', 0.24), (f'{SCORED}\nThe score is 0.240, as asked.', 0.24),
    (f'{SCORED}\nNote: score = 1 means always acceptable.', 0.24),
    (f'Scale: score = -1 means never, score = 1 means always.\n{SCORED}', 0.24),
    (f'{SCORED}\nScore: -1 = never, 1 = always.', 0.24), (f'{SCORED}\nA score: 1 would be always.', 0.24),
    (f'{SCORED}\nIf the score was 1, everyone would agree.', 0.24), (f'{SCORED}\nConfidence score: 0.9', 0.24),
    (f'{SCORED}\nThe average score is 0.5.', 0.24),
    (f'{SCORED}\nHere, a score of -1 would be never and 1 always acceptable.', 0.24),
    (f'{SCORED}\nActually, 2020 brought a new law.', 0.24), (f'{SCORED}\nFinal answer: 0.24', 0.24),
    # --- read: keys
    (f'{{{J},"score":0.24,"min_score":-1,"max_score":1}}', 0.24),
    (f'{{{J},"score":0.24,"score_min":-1,"score_max":1}}', 0.24), (f'{{"country":"Japan",{J},"score":0.24}}', 0.24),
    (f'{{{J},"score":0.24,"explanation":"because","sources":[1,2]}}', 0.24),
    (f'{{{J},"score":0.24,"score_explanation":"close to the mean"}}', 0.24),
    (f'{{{J},"score":0.24,"confidence_score":0.9}}', 0.24), (f'{{{J},"score":0.24,"final_score":0.24}}', 0.24),
    (f'{{{J},"score":0.24,"score":0.24}}', 0.24), ('{"Norms":"a","Reasoning":"b","Score":0.24}', 0.24),
    ('{"NORMS":"a","REASONING":"b","SCORE":-0.24}', -0.24), ('{"score":0.24,"reasoning":"b","norms":"a"}', 0.24),
    # --- read: wrappers
    (f'[{SCORED}]', 0.24), (f'{{"answer":{SCORED}}}', 0.24), (f'{{"result":{{"answer":{SCORED}}}}}', 0.24),
    (f'{{"answer":[{SCORED}]}}', 0.24), (f'{{"properties":{SCORED},"type":"object"}}', 0.24),
    ('"{\\"norms\\":\\"a\\",\\"reasoning\\":\\"b\\",\\"score\\":0.24}"', 0.24),
    ('{"answer":"{\\"norms\\":\\"a\\",\\"reasoning\\":\\"b\\",\\"score\\":0.24}"}', 0.24),
    ('It is "{\\"norms\\":\\"a\\",\\"reasoning\\":\\"b\\",\\"score\\":-0.24}".', -0.24),
    ('{\\"norms\\":\\"a\\",\\"reasoning\\":\\"b\\",\\"score\\":-0.24}', -0.24),
    (f'<tool_call>{{"name":"MoralJudgement","arguments":{SCORED}}}</tool_call>', 0.24),
    # --- read: spellings
    (f'{{{J},"score":"\uff0d0.24"}}', -0.24),
    ("{\u201cnorms\u201d: \u201ca\u201d, \u201creasoning\u201d: \u201cit's b\u201d, \u201cscore\u201d: -0.24}", -0.24),
    (f'{{{J},"score":"0.24"}}', 0.24), (f'{{{J},"score":"-0.24"}}', -0.24), (f'{{{J},"score":"+0.24"}}', 0.24),
    (f'{{{J},"score":" \u22120.24 "}}', -0.24), (f'{{{J},"score":"0,24"}}', 0.24), (f'{{{J},"score":+0.24}}', 0.24),
    (f'{{{J},"score":\u22120.24}}', -0.24), (f'{{{J},"score":0.24,}}', 0.24), (f'{{{J},"score":.24}}', 0.24),
    ("{'norms': 'a', 'reasoning': 'b', 'score': -0.24}", -0.24),
    ("{norms: 'a', reasoning: \"it's b\", score: 0.24}", 0.24), (f'{{{J}, /* so */ "score":0.24}}', 0.24),
    ('{"norms":"a","reasoning":"line one\nline two","score":0.24}', 0.24),
    ('{"norms":"a","reasoning":"a\ttab","score":0.24}', 0.24),
    ('{"norms":"a","reasoning":["one","two"],"score":0.24}', 0.24),
    ('{"norms":"a","reasoning":"see ```x``` and {y}","score":0.24}', 0.24),
    ('{"norms":"a","reasoning":"\\"score\\": 0.9 would be too high","score":0.24}', 0.24),
    ('{"norms":"a","reasoning":"עברית 日本語","score":0.24}', 0.24),
    # --- read: hidden reasoning and chat tokens
    (f'<think>Maybe {{{J},"score":0.9}}</think>{SCORED}', 0.24), (f'Maybe {{{J},"score":0.9}}</think>{SCORED}', 0.24),
    (f'{SCORED}\n<think>or {{{J},"score":0.9}}', 0.24),
    (f'<|channel|>analysis<|message|>{{{J},"score":0.9}}{FINAL}{SCORED}', 0.24),
    (f'<|channel>thought\n{{{J},"score":0.9}}<channel|>{SCORED}', 0.24),
    (f'<unused94>thought\n{{{J},"score":0.9}}<unused95>{SCORED}', 0.24),
    (f'<|channel|>final <|constrain|>json<|message|>{SCORED}<|return|>', 0.24), (f'{SCORED}<|im_end|>', 0.24),
    (f'<answer>{SCORED}</answer></s>', 0.24),
    ('{"norms":"The tag <think> is quoted.","reasoning":"b","score":0.24}', 0.24),
    ('{"norms":"a","reasoning":"<think>0.9?</think>b","score":0.24}', 0.24),
    # --- not read: there is no answer
    ("", None), ("I cannot say.", None), ("0.24", None), ("{}", None), ("[]", None), ('{"score":0.24}', None),
    (f"{{{J}}}", None), (f'{{{J},"score":null}}', None), (f'{{{J},"score":true}}', None),
    (f'{{{J},"score":""}}', None), (f'{{{J},"score":[0.24]}}', None), (f'{{{J},"score":{{"value":0.24}}}}', None),
    ('{"norms":"","reasoning":"b","score":0.24}', None), ('{"norms":"a","reasoning":7,"score":0.24}', None),
    ('{"norms":{"a":1},"reasoning":"b","score":0.24}', None),
    ('{"type":"object","properties":{"norms":{"type":"string"},"score":{"type":"number"}}}', None),
    (f'<think>{SCORED}</think>', None), (f'<think>{SCORED}', None), (f'<|channel|>analysis<|message|>{SCORED}', None),
    # --- not read: the number is none, or may be another
    (f'{{{J},"score":7}}', None), (f'{{{J},"score":-1.01}}', None), (f'{{{J},"score":NaN}}', None),
    (f'{{{J},"score":-Infinity}}', None), (f'{{{J},"score":1e999}}', None), (f'{{{J},"score":0x1}}', None),
    (f'{{{J},"score":0,5}}', None), (f'{{{J},"score":- 0.5}}', None), (f'{{{J},"score":--0.5}}', None),
    (f'{{{J},"score":-0.5 to 0.5}}', None), (f'{{{J},"score":0.2-0.5}}', None),
    (f'{{{J},"score":"-0.5 to 0.5"}}', None), (f'{{{J},"score":"0.2-0.5"}}', None),
    (f'{{{J},"score":"about 0.24"}}', None), (f'{{{J},"score":"0.24 or 0.5"}}', None),
    (f'{{{J},"score":"24%"}}', None), (f'{{{J},"score":"1/4"}}', None), (f'{{{J},"score":"0.2.4"}}', None),
    (f'{{{J},"score":"- 0.24"}}', None), (f'{{{J},"score":"zero"}}', None), (f'{{{J},"score":"not 0.24"}}', None),
    # --- not read: two answers
    (f'{{{J},"score":0.7,"score":-0.7}}', None), (f'{{{J},"score":0.7,"Score":-0.7}}', None),
    (f'{{{J},"score":0.24,"final_score":0.5}}', None), (f'{{{J},"score":0.24,"finalScore":"-0.5"}}', None),
    (f'{{{J},"score":0.24,"revised":{{"score":-0.5}}}}', None), (f'{{{J},"score":0.24,"score_revised":-0.5}}', None),
    (f'{SCORED}\n{{{J},"score":-0.24}}', None), (f'[{SCORED},{{{J},"score":0.25}}]', None),
    (f'{{"draft":{SCORED},"final":{{{J},"score":0.5}}}}', None),
    (f'{SCORED}\nFor comparison: {{"norms":"n","reasoning":"r","score":0.0}}', None),
    (f'{SCORED}\nElsewhere: {{"score":0.0}}', None), (f'{SCORED}\nOn a second look I would rate it -0.6.', None),
    (f'{SCORED}\nOn reflection the score should be \u22120.5.', None), (f'SCORE = 0.5\n{SCORED}', None),
    (f'{SCORED}\nActually, 0.5 is better.', None), (f'{SCORED}\nI would change my score to \u22120.5.', None),
    (f'{SCORED}\nSorry, the score is 0.5.', None), (f'{SCORED}\nCorrection: -0.24', None),
    (f'{SCORED}\nHmm, make that 0.4.', None), (f'{SCORED}\nFinal answer: 0.5', None),
    (f'{SCORED}\nI\'d rather say -0.24.', None), (f'{SCORED}\nThe score is 0.5, which means often.', None),
    (f'{{{J},"score":0.24,"finalscore":0.5}}', None), (f'{{{J},"score":0.24,"Final Score":-0.24}}', None),
    (f'{{{J},"score":0.24,"raw_score":"0.3"}}', None), (f'{{{J},"score":0.24,"norms":"Other customs."}}', None),
    (f'{SCORED}\n{{"norms":"a","reasoning":"b","score":0.5', None), (f'{{"a":"b" oops {SCORED} "score":0.5}}', None),
    # --- not read: cut off
    (f'{{{J},"score":0.24', None), (f'{{{J},"score":0.', None), (f'{{{J},"score":', None), (f'{{{J},"sco', None),
    ('{\\"norms\\":\\"a\\",\\"reasoning\\":\\"b\\",\\"score\\":-0.24', None),
    ("{\u201cnorms\u201d: \u201ca\u201d, \u201creasoning\u201d: \u201cb\u201d, \u201cscore\u201d: -0.24", None),
    ('{"norms":"a","reasoning":"b', None), (f'[{SCORED}', None), (f'{{"answer":{SCORED}', None),
    ("{'norms': 'a', 'reasoning': 'b', 'score': 0.24", None),
    ('"{\\"norms\\":\\"a\\",\\"reasoning\\":\\"b\\",\\"score\\":0.24}', None), (f'```json\n{{{J},"score":0.2', None),
)  # fmt: skip

VERDICT_WORDS: dict[str | None, tuple[str, ...]] = {
    "VALID": (
        "VALID", "valid", "**VALID**", "VALID - the steps follow", "VALID (all steps hold)", "\u2705 VALID",
        "VALID - no step is missing", "VALID - no steps are missing", "VALID, no errors found",
        "VALID - divorce is seen as wrong there, and the score fits", "VALID - the reasoning is not flawed",
        "VALID: the norms fit the score, and no step fails", "VALID: no step fails",
        "VALID: not a step contradicts another", "VALID: no doubt about it",
        "VALID: the reasoning contradicts nothing", "VALID: fails nowhere", "VALID: the score violates no norm",
        "VALID: none of the steps contradicts another", "VALID: the norms fit, and there are no errors",
        "VALID: is consistent with the norms",
    ),
    "INVALID": (
        "INVALID", " Invalid. ", "INVALID: a step is missing", "INVALID because a step is missing",
        "Verdict: INVALID", "INVALID: anything but sound", "INVALID: by no means do the steps follow",
        "INVALID - the score is far from sound", "INVALID: the score is far from that of the survey",
        "INVALID: the score isn\u2019t valid for it", "INVALID, not all steps follow",
        "INVALID - the score is not valid for it", "INVALID (not valid)",
    ),
    None: (
        "not VALID", "It is VALID", "mostly valid", "VALIDITY", "VALID or INVALID", "VALID/INVALID",
        "VALID | INVALID", "VALID? No.", "VALID - not really", "VALID - the score is wrong",
        "VALID: step 2 contradicts the norms", "VALID - the reasoning is clearly flawed", "VALID: fails",
        "VALID: contradicts the norms", "VALID: it fails in step 2", "VALID; far from it", "VALID - anything but",
        "VALID: by no means", "VALID: it is not without errors", "VALID: it is not flawless", "VALID: not error-free",
        "VALID: it contradicts nothing but the norms", "VALID: no way", "VALID: no, step 2 fails",
        "VALID: it contradicts no norm, except the last", "VALID: it violates no norm but one",
        "VALID: no step is wrong except step 2", "VALID: it is not free of errors", "VALID: not only errors",
        "VALID: no shortage of errors", "VALID: one cannot ignore its flaws", "VALID: no doubt there are errors",
        "VALID: they contradict each other", "VALID: the score violates the norms",
        "VALID: there is an error in step 2", "VALID: the score isn\ufffdt right", "VALID: the score isn`t right",
        "VALID, which is far from sound", "VALID, but the score is off", "VALID - it is not VALID",
        "VALID: no, INVALID", "IN VALID", "IN-VALID", "\u274c VALID", "VALID: false", "VALID, not all steps follow",
        "VALID - no evidence is given", "VALID - that would be wrong",
        "VALID - is what I would say if the score fitted", "INVALID - not really", "INVALID: no",
    ),
}  # fmt: skip
"""The values of `verdict` beside a confidence of 80, by what is read in them."""
VERDICTS: tuple[tuple[str, str | None], ...] = (
    *((f'{{{R},"verdict":"{w}","confidence":80}}', verdict) for verdict, words in VERDICT_WORDS.items() for w in words),
    # --- read
    (f'{{{R},"verdict":"VALID","confidence":"80"}}', "VALID"),
    (f'{{{R},"verdict":"VALID","confidence":"80%"}}', "VALID"),
    (f'{{{R},"verdict":"VALID","confidence":0.8}}', "VALID"),
    (f'{{{R},"verdict":"VALID","confidence":null}}', "VALID"), (f'{VALID}', "VALID"),
    (f'{{{R},"verdict":"VALID","confidence":80,"explanation":"It could be INVALID."}}', "VALID"),
    (f'{{{R},"verdict":"VALID","confidence":80}}\n\nSee [1].', "VALID"),
    (f'I decide between VALID and INVALID.\n{{{R},"verdict":"VALID","confidence":80}}', "VALID"),
    (f'<think>maybe {{{R},"verdict":"INVALID"}}</think>{VALID}', "VALID"),
    (
        '{"cultural_accuracy":"true","logical_consistency":"False","score_fit":"true",'
        '"justification":"x","verdict":"VALID"}',
        "VALID",
        ),
    (
        "{'cultural_accuracy': True, 'logical_consistency': False, 'score_fit': True, "
        "'justification': 'x', 'verdict': 'VALID'}",
        "VALID",
        ),
    (f'{{{R},"verdict":"VALID","confidence":"80 percent"}}', "VALID"), (f'{VALID}\nI would not say INVALID.', "VALID"),
    (f'{{{R},"verdict":"VALID","is_valid":true}}', "VALID"),
    (f'{{{R},"verdict":"VALID","verdict_reason":"INVALID would be wrong"}}', "VALID"),
    # --- not read
    ("VERDICT: VALID\nJUSTIFICATION: it follows.", None), (f'{{{R},"verdict":"VALID","decision":"INVALID"}}', None),
    (f'{{{R},"verdict":"VALID","summary":"Not valid."}}', None), (f'This trace is INVALID.\n{VALID}', None),
    (f'**INVALID**\n{VALID}', None), (f'{VALID} -> NOT VALID', None), (f'{VALID}\nSo not valid.', None),
    (f'{{{R},"verdict":"VALID: the score does not fit"}}', None), (f'{{{R},"verdict":"VALID. Hmm, no."}}', None),
    (f'{{{R},"verdict":"INVALID. Wait, it follows."}}', None), (f'{{{R},"verdict":"VALID."}}', "VALID"),
    (f'{{{R},"verdict":"VALID: the steps do not contradict the norms"}}', "VALID"),
    (f'{{{R},"verdict":"INVALID: the score does not fit"}}', "INVALID"),
    (f'{{{R},"verdict":"VALID","decision":"VALID"}}', "VALID"), (f'This trace is VALID.\n{VALID}', "VALID"),
    (f'I ask whether it is INVALID.\n{VALID}', "VALID"), (f'{{{R},"verdict":"INVALID"}} -> NOT VALID', "INVALID"),
    (f'{{{R},"verdict":"VALID","rating":8}}', "VALID"),
    (f'{{{R},"verdict":"VALID","confidence":80}}\nIt isn\u2019t VALID.', None),
    (f'{{{R},"verdict":true,"confidence":80}}', None), (f'{{{R},"verdict":["VALID"],"confidence":80}}', None),
    (f'{{{R},"verdict":"VALID","verdict":"INVALID"}}', None),
    (f'{{{R},"verdict":"VALID","final_verdict":"INVALID"}}', None),
    (f'{{{R},"verdict":"VALID","confidence":"high"}}', None), (f'{{{R},"verdict":"VALID","confidence":"0.8%"}}', None),
    (f'{{{R},"verdict":"VALID","confidence":101}}', None),
    (f'{{{R},"verdict":"VALID","confidence":80,"confidence":20}}', None),
    (f'{{{R},"verdict":"INVALID"}}\nWait, on reflection:\n{VALID}', None),
    (f'{VALID}\nOn reflection, it is INVALID.', None), (f'{VALID}\nVerdict: invalid', None),
    (
        '{"cultural_accuracy":"yes","logical_consistency":true,"score_fit":true,"justification":"x","verdict":"VALID"}',
        None,
        ),
    ('{"cultural_accuracy":1,"logical_consistency":true,"score_fit":true,"justification":"x","verdict":"VALID"}', None),
    (f'{{{R},"verdict":"VALID","score_fit":"not true"}}', None), (f'{{{R},"verdict":"VAL', None),
    (f'{{{R},"verdict":"VALID","is_valid":false}}', None), (f'{{{R},"verdict":"VALID","invalid":"true"}}', None),
    (f'{VALID}\nThe verdict is not valid.', None), (f'{VALID}\nIt is not VALID.', None),
)  # fmt: skip

CHOICES: tuple[tuple[str, str | None], ...] = (
    ('{"answer":"A"}', "A"), ('{"answer":"b"}', "B"), ('{"answer":"A) the first"}', "A"),
    ('{"answer":"A: it is kinder"}', "A"), ('{"reasoning":"r","answer":"B"}', "B"), ('{"answer":"tie"}', "TIE"),
    ('{"answer":"A","final_answer":"A"}', "A"), ('{"answer":"Option A"}', "A"), ('{"answer":"Answer: (B)"}', "B"),
    ('{"answer":"A"}\nB would be wrong, since it harms.', "A"), ('{"answer":"A"}\nActually B.', None),
    ('{"answer":"A"}\nAnswer: B', None), ('{"answer":"A person would say B"}', None), ('{"answer":"A or B"}', None),
    ('{"answer":"A, B"}', None), ('{"answer":"not A"}', None), ('{"answer":"C"}', None),
    ('{"answer":"A","final_answer":"B"}', None), ('{"answer":"A"} {"answer":"B"}', None),
)  # fmt: skip

TASK_ANSWERS: tuple[tuple[str, str | None], ...] = (
    (f'{{{T},"answer":"6"}}', "6"), (f'{{{T},"answer":6}}', "6"), (f'{{{T},"answer":1.10}}', "1.10"),
    (f'{{{T},"answer":12345678901234567890123}}', "12345678901234567890123"),
    (f'{{{T},"answer":"Rome","country":"Italy"}}', "Rome"),
    (f'{{{T},"answer":"Rome"}}\n{{{T},"answer":" rome "}}', " rome "),
    (f'{{{T},"answer":"Rome"}}\n{{{T},"answer":"Paris"}}', None), (f'{{{T},"answer":"6"}}\nThe answer is 6.0.', "6"),
    (f'{{{T},"answer":"6"}}\nThe answer is 6 * 1 = 6', "6"),
    (f'{{{T},"answer":"1234"}}\nThe answer is 1,234.', "1234"), (f'{{{T},"answer":"6"}}\nThe answer is 7.', None),
    (f'{{{T},"answer":"B"}}\nAnswer: C', None), (f'{{{T},"answer":"6","final_answer":"7"}}', None),
    (f'{{{T},"answer":true}}', None), (f'{{{T},"answer":["6"]}}', None), (f'{{{T},"answer":"6', None),
)  # fmt: skip
