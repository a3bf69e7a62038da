# SPDX-License-Identifier: Apache-2.0
# bash completion for treenail-bench; tests/python/test_benchmark_program.py holds it to --help.
_treenail_bench() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  # --model=x comes as the three words --model, = and x.
  if [[ $word == "=" ]]; then
    word=
  elif [[ $before == "=" ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  local words
  case $before in
    --model) words="inception3 lstm mlp resnet50 vgg16" ;;
    --optimizer) words="adam momentum sgd" ;;
    --data-format) words="NCHW NHWC" ;;
    --report)
      compopt -o default
      COMPREPLY=()
      return
      ;;
    *)
      words="--batch-size --data-format --device --display-every --forward-only --help
        --image-size --learning-rate --list-models --model --num-batches --num-warmup-batches
        --optimizer --report --seed --threads --version --weight-decay"
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -F _treenail_bench treenail-bench
