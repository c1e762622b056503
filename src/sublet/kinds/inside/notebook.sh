#!/bin/sh
# Executes a notebook in place with the image's own tools; POSIX sh only, as in images. Arguments: the notebook, the
# kernel (empty: the one that it names), and `parameters` if it has a cell that only papermill can fill in.
# Values are data: the notebook reads them from params.json, papermill from parameters.yaml beside this file.

case $1 in
*/*) folder=${1%/*} ;;
*) folder=. ;;
esac
if command -v papermill >/dev/null 2>&1; then
    exec papermill --no-progress-bar --stdout-file - --stderr-file - --cwd "$folder" \
        ${2:+-k "$2" -l python -f "${0%/*}/parameters.yaml"} "./$1" "$result_folder/executed.ipynb"
fi
if ! command -v jupyter-nbconvert >/dev/null 2>&1; then
    echo 'sublet: the image has neither papermill nor jupyter-nbconvert, by which a notebook is executed' >&2
    exit 127
fi
if [ "$3" = parameters ]; then
    echo 'sublet: the image has no papermill, which fills in the cell that is tagged parameters' >&2
    echo 'sublet: take an image that has it, or take the tag away and read params.json in the notebook' >&2
    exit 78
fi
exec jupyter-nbconvert --to notebook --execute ${2:+"--ExecutePreprocessor.kernel_name=$2"} \
    --output-dir "$result_folder" --output executed.ipynb "./$1"
